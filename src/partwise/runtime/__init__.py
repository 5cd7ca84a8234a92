"""What a fit takes of the machine: compiled kernels, threads, signals, and files that are written whole."""
