import { DatabaseStartError } from '#db/start-error.ts'
import { version } from '#package.json'
import { ArgumentError } from './config/arguments.ts'
import { catchHangups } from './hangups.ts'
import { commandLine, type Role } from './lib/own-program.ts'
import { suggestionFor } from './lib/suggestion.ts'
import { StartError } from './start-error.ts'

type Command = {
  readonly summary: string
  /** Resolves with the exit code. Imports what it needs, so that the others start fast. */
  readonly run: (args: readonly string[]) => Promise<number>
}

const commands: Readonly<Record<string, Command>> = {
  serve: {
    summary: 'serves the gateway (the default)',
    async run(args) {
      const hangups = catchHangups()
      return (await import('./start.ts')).start(args, hangups)
    },
  },
  token: {
    summary: 'prints a development token',
    run: async (args) => (await import('./auth/token-command.ts')).printToken(args),
  },
  login: {
    summary: 'logs this machine in at a gateway and stores an API key',
    run: async (args) => (await import('./sessions/login-command.ts')).logIn(args, fetch),
  },
  logout: {
    summary: 'revokes and forgets that key',
    run: async (args) => (await import('./sessions/login-command.ts')).logOut(args, fetch),
  },
  doctor: {
    summary: 'checks that every dependency is reachable and configured',
    run: async (args) => (await import('./doctor/doctor.ts')).examineMachine(args),
  },
  config: {
    summary: 'prints the effective configuration without secrets',
    run: async (args) => (await import('./print-config.ts')).printConfig(args),
  },
  'config check': {
    summary: 'validates a configuration file without starting',
    run: async (args) => (await import('./commands/check-config.ts')).checkConfig(args),
  },
  health: {
    summary: 'exits with 0 if a gateway on this machine is ready',
    run: async (args) => (await import('./commands/health.ts')).checkHealth(args, fetch),
  },
  migrate: {
    summary: 'brings the database to the schema of this version',
    run: async (args) => (await import('./commands/migrate.ts')).migrate(args),
  },
  backup: {
    summary: 'writes the embedded database and the files into an archive',
    run: async (args) => (await import('./commands/backup.ts')).backUp(args),
  },
  restore: {
    summary: 'restores such an archive',
    run: async (args) => (await import('./commands/restore-backup.ts')).restore(args),
  },
  'mp3 install': {
    summary: 'installs the MP3 decoder (LGPL) into the data folder',
    run: async (args) => (await import('./speech/mp3-install.ts')).installMp3(args),
  },
  'llama install': {
    summary: 'installs the local model runtime into the data folder',
    run: async (args) => (await import('./models/llama-install.ts')).installLlama(args),
  },
  'speech install': {
    summary: 'installs a local speech model and its runtime',
    run: async (args) => (await import('./models/speech-install.ts')).installSpeech(args),
  },
  'voice install': {
    summary: 'installs the local voices, which speak texts',
    run: async (args) => (await import('./models/voice-install.ts')).installVoice(args),
  },
  'model install': {
    summary: 'installs a local model, and its runtime if needed',
    run: async (args) => (await import('./models/gguf-install.ts')).installModel(args),
  },
  'embed install': {
    summary: 'installs a local embedding model and its runtime',
    run: async (args) => (await import('./models/onnx-install.ts')).installEmbedding(args),
  },
}

/** The processes that this program starts itself. They end themselves, except for a worker. */
const roles: Readonly<Record<Role, (args: readonly string[]) => Promise<number | undefined>>> = {
  async worker(args) {
    const hangups = catchHangups()
    return (await import('./start.ts')).startWorker(args, hangups)
  },
  'extract-text': async () => {
    await import('./retrieval/extraction/child.ts')
    return undefined
  },
  'run-model': async () => {
    await import('./inference/upstreams/llama/child.ts')
    return undefined
  },
  'recognise-speech': async () => {
    await import('./speech/engines/local/child.ts')
    return undefined
  },
  'speak-text': async () => {
    await import('./inference/upstreams/flite/child.ts')
    return undefined
  },
  'run-encoder': async () => {
    await import('./inference/upstreams/onnx/child.ts')
    return undefined
  },
  'create-database': async ([folder = '']) => {
    const { createCluster } = await import('#db/pglite-create.ts')
    await createCluster(folder)
    return undefined
  },
}

/**
 * Runs a command or a role of this program. Resolves with the exit code if the process shall end at
 * once; otherwise it ends when nothing is left to do.
 */
export async function run(args: readonly string[]): Promise<number | undefined> {
  const [first = ''] = args
  try {
    if (isRole(first)) return await roles[first](args.slice(1))
    const { name, rest } = findCommand(args)
    if (name === null) return printOnly(first === '--version' ? version : usage())
    const code = await commands[name]?.run(rest)
    if (name === 'serve') return code
    process.exitCode = code
  } catch (error) {
    if (isMissingPackage(error)) throw error
    process.stderr.write(`${isForOperator(error) ? error.message : Bun.inspect(error)}\n`)
    // A failed worker or server may have timers that would keep it running.
    return 1
  }
  return undefined
}

function isRole(name: string): name is Role {
  return Object.hasOwn(roles, name)
}

/** A `name` of null stands for `--help` and `--version`. */
function findCommand(args: readonly string[]): { name: string | null; rest: readonly string[] } {
  const [first = '', second = ''] = args
  if (/^(--help|-h|--version)$/.test(first)) return { name: null, rest: [] }
  if (first === '' || first.startsWith('-')) return { name: 'serve', rest: args }
  for (const [name, rest] of [
    [`${first} ${second}`, args.slice(2)],
    [first, args.slice(1)],
  ] as const) {
    if (Object.hasOwn(commands, name)) return { name, rest }
  }
  const within = Object.keys(commands).filter((name) => name.startsWith(`${first} `))
  if (within.length > 0 && /^(|--help|-h)$/.test(second))
    return { name: within[0] ?? null, rest: ['--help'] }
  const suggestion = suggestionFor(first, Object.keys(commands))
  throw new ArgumentError(`Unknown command ${first}${suggestion || '.'} See --help.`)
}

function printOnly(text: string): undefined {
  process.stdout.write(`${text}\n`)
}

function usage(): string {
  const lines = Object.entries(commands).map(
    ([name, { summary }]) => [commandLine(name), summary] as const,
  )
  const width = Math.max(...lines.map(([line]) => line.length))
  const list = lines.map(([line, summary]) => `  ${line.padEnd(width)}  ${summary}`)
  return `Usage: ${commandLine('serve')}

Sluice ${version}. Commands, each with --help:

${list.join('\n')}

Configuration comes from ./sluice.toml (or the file of SLUICE_CONFIG) and from environment variables
such as HOST, PORT, DATABASE_URL and SLUICE_UPSTREAM_URL; docs/configuration.md lists all of them.`
}

function isMissingPackage(error: unknown): boolean {
  return error instanceof Error && 'specifier' in error
}

function isForOperator(error: unknown): error is Error {
  return (
    error instanceof ArgumentError ||
    error instanceof DatabaseStartError ||
    error instanceof StartError ||
    // By its name, because its module loads the schemas of every feature.
    (error instanceof Error && error.name === 'ConfigError')
  )
}
