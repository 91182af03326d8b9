"""What Metal of this machine tells of its devices."""
