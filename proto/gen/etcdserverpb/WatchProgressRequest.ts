// Original file: etcd.proto


export interface WatchProgressRequest {
}

export interface WatchProgressRequest__Output {
}
