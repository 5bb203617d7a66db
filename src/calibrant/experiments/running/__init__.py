"""Running: trials done by processes and clusters, and the store that keeps what came of them."""
