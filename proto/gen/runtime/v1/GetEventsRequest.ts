// Original file: cri.proto


export interface GetEventsRequest {
}

export interface GetEventsRequest__Output {
}
