"""Cards below the kernel's protocols: handlers on frames, and XDP programs in the driver."""
