// Plain JavaScript without static imports, which any version of Node reads, and nothing that needs an
// installed package, so that it can say what is missing.
void main().then((code) => {
  if (code !== undefined) process.exit(code)
})

async function main() {
  if (process.versions.bun === undefined) return fail(await wrongRuntime())
  const { runtimeFault } = await import('./runtime.ts')
  const fault = runtimeFault(process.versions)
  if (fault !== null) return fail(fault)
  const { run } = await import('./cli.ts')
  return run(process.argv.slice(2)).catch(explainMissingPackage)
}

async function wrongRuntime() {
  const { readFileSync } = await import('node:fs')
  const { join } = await import('node:path')
  const file = readFileSync(join(process.argv[1] ?? '', '../../package.json'), 'utf8')
  const needed = JSON.parse(file).engines.bun.replace('>=', '')
  return `Sluice runs on Bun ${needed} or later, and this is Node ${process.versions.node}. Start it with: npx -y bun@${needed} start`
}

function explainMissingPackage(error = new Error()) {
  const specifier = 'specifier' in error ? String(error.specifier) : ''
  if (specifier === '' || /^[.#/]/.test(specifier)) throw error
  return fail(`The package ${specifier} is not installed. Run: bun install --production`)
}

function fail(sentence = '') {
  process.stderr.write(`${sentence}\n`)
  return 1
}
