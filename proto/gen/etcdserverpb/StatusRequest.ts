// Original file: etcd.proto


export interface StatusRequest {
}

export interface StatusRequest__Output {
}
