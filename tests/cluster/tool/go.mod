module restamp.test/cluster

go 1.26.0
