import { type ParseArgsOptionsConfig, parseArgs } from 'node:util'
import { messageOf } from '#lib/error-message.ts'
import { suggestionFor } from '#lib/suggestion.ts'

/** A wrong command line, in one sentence for the operator. */
export class ArgumentError extends Error {
  override readonly name = 'ArgumentError'
}

type Program<Options> = {
  readonly usage: string
  readonly options: Options
  /** Environment variables for what other programs take as options. */
  readonly variables?: Readonly<Record<string, string>>
}

/**
 * The options of a program, or null after `--help`, which prints the usage. Throws an
 * `ArgumentError` for an unknown option and for anything else that the program does not take.
 */
export function readOptions<const Options extends ParseArgsOptionsConfig>(
  argv: readonly string[],
  { usage, options, variables = {} }: Program<Options>,
) {
  if (argv.includes('--help') || argv.includes('-h')) {
    process.stdout.write(`${usage.trim()}\n`)
    return null
  }
  for (const argument of argv) requireKnown(argument, Object.keys(options), variables)
  try {
    return parseArgs({ args: [...argv], options }).values
  } catch (error) {
    // A command may take a first argument by itself.
    const reason = messageOf(error).replace('. This command does not take positional arguments', '')
    throw new ArgumentError(`${reason.replace(/\.? *$/, '.')} See --help.`)
  }
}

function requireKnown(
  argument: string,
  known: readonly string[],
  variables: Readonly<Record<string, string>>,
): void {
  const [, name] = /^--?([^=]+)/.exec(argument) ?? []
  if (name === undefined || known.includes(name)) return
  const variable = variables[name]
  if (variable !== undefined) {
    throw new ArgumentError(`Unknown option --${name}; set the variable ${variable} instead.`)
  }
  const suggestion = suggestionFor(`--${name}`, ['--help', ...known.map((option) => `--${option}`)])
  throw new ArgumentError(
    `Unknown option ${argument.split('=', 1)}${suggestion || '.'} See --help.`,
  )
}
