"""The gate: did a change make a scheme worse? Two builds, one suite in virtual time, a paired test."""
