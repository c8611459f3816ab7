import { ArgumentError, readOptions } from '#config/arguments.ts'
import { configFileOfProcess, loadConfigFromProcess } from '#config/load.ts'
import { upstreamFaults } from '#inference/upstreams/index.ts'
import { commandLine } from '#lib/own-program.ts'
import { engineFaults } from '#speech/engines/registry.ts'

const usage = `
Usage: ${commandLine('config check')} [FILE]

Validates a configuration file with the environment of this command, as a start and a reload do, and
starts nothing. Without FILE, the file that a start would read. The exit code is 1 if it is not valid.`

/** The command `config check`. */
export async function checkConfig(args: readonly string[]): Promise<number> {
  const [path, ...others] = args.filter((argument) => !argument.startsWith('-'))
  if (others.length > 0) throw new ArgumentError('One file at a time. See --help.')
  const options = args.filter((argument) => argument.startsWith('-'))
  if (readOptions(options, { usage, options: {} }) === null) return 0
  const file = configFileOfProcess(path)
  loadConfigFromProcess([upstreamFaults, engineFaults], file)
  const what = file.text === null ? `There is no ${file.path}; the environment` : file.path
  process.stdout.write(`${what} is valid.\n`)
  return 0
}
