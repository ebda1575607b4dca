"""What calls took: rows, trees and figures by what was called, from where, and by whom."""
