// Original file: plugin-registration.proto


export interface RegistrationStatusResponse {
}

export interface RegistrationStatusResponse__Output {
}
