"""What mechanisms and engines share: a session's methods, and the public data that pass through."""
