"""The lessons: the worked example of the first document, and the experiments that go with it."""
