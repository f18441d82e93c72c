"""What the measurements share: an upstream of real sockets, what is measured against it, a client, and a table."""
