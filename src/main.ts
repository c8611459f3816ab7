// Imports nothing that needs Bun or an installed package, so that it can say what is missing.
import { runtimeFault } from './runtime.ts'

process.exit(await main())

async function main(): Promise<number> {
  const fault = runtimeFault(process.versions)
  if (fault !== null) return fail(fault)
  const { start } = await import('./start.ts').catch(explainMissingPackage)
  return start === undefined ? 1 : start()
}

function explainMissingPackage(error: unknown): { start?: never } {
  const specifier = error instanceof Error && 'specifier' in error ? String(error.specifier) : ''
  if (specifier === '' || /^[.#/]/.test(specifier)) throw error
  fail(`The package ${specifier} is not installed. Run: bun install --production`)
  return {}
}

function fail(sentence: string): number {
  process.stderr.write(`${sentence}\n`)
  return 1
}
