import type { Config } from './config/schema.ts'
import { packageFault as llamaFault } from './inference/upstreams/llama/package.ts'
import { packageFault as onnxFault } from './inference/upstreams/onnx/package.ts'
import { commandLine } from './lib/own-program.ts'
import { llamaFolder } from './models/llama-config.ts'
import { onnxFolder } from './models/onnx-config.ts'
import { runtimeEntry, speechFolders } from './speech/engines/local/package.ts'

/** What this machine can run itself, with the command that installs each. */
const engines: readonly {
  readonly command: string
  readonly purpose: string
  readonly isMissing: (config: Config) => boolean
}[] = [
  {
    command: 'model install',
    purpose: 'a small language model',
    isMissing: (config) => config.llama.enabled && llamaFault(llamaFolder(config)) !== null,
  },
  {
    command: 'embed install',
    purpose: 'search by meaning in documents',
    isMissing: (config) => config.onnx.enabled && onnxFault(onnxFolder(config)) !== null,
  },
  {
    command: 'speech install',
    purpose: 'speech recognition',
    isMissing: (config) => runtimeEntry(speechFolders(config).runtime) === null,
  },
]

/** A line for each engine that is not installed; empty if all are. */
export function missingEngineLines(config: Config): readonly string[] {
  const missing = engines.filter(({ isMissing }) => isMissing(config))
  const width = Math.max(...missing.map(({ command }) => commandLine(command).length))
  return missing.map(
    ({ command, purpose }) => `  ${commandLine(command).padEnd(width)}  ${purpose}`,
  )
}
