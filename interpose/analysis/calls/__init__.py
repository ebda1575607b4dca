"""What calls took: rows, trees and figures by intrinsic, by line, and by caller."""
