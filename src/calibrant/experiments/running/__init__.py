"""Running: trials done by processes and clusters, the store that keeps what came of them, and what that says."""
