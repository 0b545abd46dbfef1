// The call that is measured through `nodelet tap`: of the size of a usual CRI request, and its response.

export const METHOD = '/runtime.v1.RuntimeService/PodSandboxStatus';

/** A gRPC message of 256 bytes, not compressed. */
export const MESSAGE = Buffer.concat([Buffer.from([0, 0, 0, 1, 0]), Buffer.alloc(256, 7)]);
