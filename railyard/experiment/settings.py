"""The QUIC schemes and their settings, which the programs declare in `lib/schemes/quic_settings.c`."""

from railyard.base.declared import DESCRIBED

SETTINGS = {setting.name: setting for setting in DESCRIBED.settings}
QUIC_SCHEMES = {scheme.name: scheme for scheme in DESCRIBED.schemes}
SCHEDULERS = SETTINGS["scheduler"].words
FORESIGHT_SCHEDULERS = DESCRIBED.foresight
CONTROLLERS = SETTINGS["cc"].words
