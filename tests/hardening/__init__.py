"""What the world may do to a run: disks that fail, signals, and ten thousand calls in one process."""
