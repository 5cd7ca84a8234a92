"""The layer between fits and the machine: compiled kernels, threads, Ctrl-C, and safe files."""
