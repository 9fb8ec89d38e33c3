"""Cases of the features that the fast engines share."""
