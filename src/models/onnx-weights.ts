import type { RemoteFile } from '#installer/sources/source.ts'

/** Small multilingual models: 118 MB each. */
export const defaultModels = {
  embed: 'Xenova/multilingual-e5-small',
  rerank: 'cross-encoder/mmarco-mMiniLMv2-L12-H384-v1',
} as const

/** The weights of the default embedding model. */
export const defaultWeights = 'onnx/model_quantized.onnx'

/** The files that a model may have besides its weights. */
export const onnxSettings: readonly string[] = [
  ...['config.json', 'tokenizer.json', 'tokenizer_config.json', 'sluice.json'],
  ...['sentence_bert_config.json', 'config_sentence_transformers.json', '1_Pooling/config.json'],
]

/** The files that a model may have; `chooseWeights` selects one file of weights. */
export const onnxFiles: readonly string[] = [
  ...onnxSettings,
  ...['*.onnx', 'onnx/*.onnx', '*.onnx_data', 'onnx/*.onnx_data'],
]

/** Names of weights, the best compromise of size and quality first. */
const preferred: readonly RegExp[] = [
  /(?:^|\/)model_quantized\.onnx$/,
  /(?:^|\/)model_quint8_avx2\.onnx$/,
  /(?:^|\/)model_(?:int8|qint8_\w+|uint8)\.onnx$/,
  /(?:^|\/)model\.onnx$/,
  /\.onnx$/,
]

/** Keeps the settings and one file of weights, with its external data. */
export function chooseWeights(files: readonly RemoteFile[]): readonly RemoteFile[] {
  const weights = files.filter(({ path }) => path.endsWith('.onnx'))
  const best = preferred
    .map((pattern) => weights.find(({ path }) => pattern.test(path)))
    .find((file) => file !== undefined)
  return files.filter(
    ({ path }) =>
      !/\.onnx(?:_data)?$/.test(path) || path === best?.path || path === `${best?.path}_data`,
  )
}
