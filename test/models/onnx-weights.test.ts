import { expect, test } from 'bun:test'
import { chooseWeights } from '#models/onnx-weights.ts'

const settings = ['config.json', 'tokenizer.json']

function chosen(...paths: string[]) {
  const from = { url: 'http://127.0.0.1' }
  const files = [...settings, ...paths].map((path) => ({ path, bytes: 1, sha256: null, from }))
  return chooseWeights(files)
    .map(({ path }) => path)
    .filter((path) => !settings.includes(path))
}

test.each([
  [['onnx/model.onnx', 'onnx/model_quantized.onnx'], ['onnx/model_quantized.onnx']],
  [
    ['onnx/model.onnx', 'onnx/model_qint8_arm64.onnx', 'onnx/model_quint8_avx2.onnx'],
    ['onnx/model_quint8_avx2.onnx'],
  ],
  [
    ['model.onnx', 'model.onnx_data', 'other.onnx_data'],
    ['model.onnx', 'model.onnx_data'],
  ],
  [['any.onnx'], ['any.onnx']],
])('of %j one file of weights is installed, with its data', (paths, expected) => {
  expect(chosen(...paths)).toEqual(expected)
})
