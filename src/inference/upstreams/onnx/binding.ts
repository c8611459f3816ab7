/** What this adapter uses of `onnxruntime-node`, which is installed on demand. */

export type Tensor = {
  readonly data: Float32Array | BigInt64Array
  readonly dims: readonly number[]
}

export type Session = {
  readonly inputNames: readonly string[]
  readonly outputNames: readonly string[]
  run(feeds: Readonly<Record<string, Tensor>>): Promise<Readonly<Record<string, Tensor>>>
}

export type Binding = {
  readonly InferenceSession: {
    create(path: string, options: Readonly<Record<string, unknown>>): Promise<Session>
  }
  readonly Tensor: new (type: 'int64', data: BigInt64Array, dims: readonly number[]) => Tensor
}
