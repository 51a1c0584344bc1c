"""What if: changes of a machine, lists of them, before and after."""
