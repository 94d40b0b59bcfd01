"""The window in a browser: an HTTP server, its page, and the exchange of frames and events with each viewer."""
