"""Services that any layer may use: threads, memory, tasks, atomic files, clock."""
