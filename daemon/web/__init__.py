"""The web server: webhooks in, health and figures out."""
