import manifest from '#package.json' with { type: 'json' }

/** Why this Bun cannot run Sluice, in one sentence; null if it can. */
export function runtimeFault({ bun }: { readonly bun: string }): string | null {
  const needed = neededVersion()
  if (!isOlder(bun, needed)) return null
  return `Sluice needs Bun ${needed} or later, and this is Bun ${bun}. Start it with: npx -y bun@${needed} start`
}

/** From `engines` of package.json, which is `>=` and a version. */
function neededVersion(): string {
  return manifest.engines.bun.replace('>=', '')
}

function isOlder(version: string, than: string): boolean {
  const [a, b] = [numbers(version), numbers(than)]
  const at = a.findIndex((number, index) => number !== b[index])
  return at >= 0 && Number(a[at]) < Number(b[at])
}

/** Of `1.4.5-canary.3`: 1, 4, 5. */
function numbers(version: string): number[] {
  return version.split(/[-+]/, 1).join().split('.').map(Number)
}
