"""What engines need of the libraries that run them."""
