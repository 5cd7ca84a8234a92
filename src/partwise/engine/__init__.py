"""One loop and what it needs: blocks, starts, stopping, results, chunks of samples, checkpoints."""
