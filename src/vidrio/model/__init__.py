"""What a model is: configuration, parameter names and shapes, the model folder, and how to find one."""
