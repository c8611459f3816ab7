import type { Check, CreateHook, HookText } from '#hooks/hook.ts'

/** A hook for tests: words in the texts decide what it does. `stages`: where. */
export const createHook: CreateHook = (options) => {
  const stages = options['stages'] as readonly string[]
  const check: Check = (texts) => {
    const all = texts.map(({ text }) => text).join('\n')
    if (all.includes('THROW')) throw new Error('a fault of the hook with a secret')
    if (all.includes('HANG')) return new Promise(() => {})
    if (all.includes('NONSENSE')) return { texts: [] }
    if (all.includes('FORBIDDEN')) return { refuse: 'Not here.' }
    return all.includes('SECRET') ? Promise.resolve({ texts: texts.map(redact) }) : undefined
  }
  const checks = Object.fromEntries(stages.map((stage) => [stage, check]))
  return { begin: () => checks }
}

function redact({ text }: HookText): string {
  return text.replaceAll('SECRET', 'public')
}
