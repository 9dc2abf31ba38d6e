"""Goals of survival: crashes, full disks, killed processes, lost tasks, interruptions, damaged files."""
