// Original file: device-plugin.proto


export interface Empty {
}

export interface Empty__Output {
}
