// Original file: device-plugin.proto


export interface PreStartContainerResponse {
}

export interface PreStartContainerResponse__Output {
}
