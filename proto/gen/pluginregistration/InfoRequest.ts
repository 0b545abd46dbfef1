// Original file: plugin-registration.proto


export interface InfoRequest {
}

export interface InfoRequest__Output {
}
