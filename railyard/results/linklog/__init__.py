"""Link logs of mpshell, the simulator and Mahimahi's mm-link: docs/reference/results.md."""
