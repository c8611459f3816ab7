import type { ToolName } from '#inference/request.ts'

/** How the demo models use a search of files: with what they were asked, quoting the best passage. */

/** So much of the prompt is searched for, in characters. */
const queryCharsMax = 400
/** So much of a passage is quoted, in words. */
const quotedWordsMax = 40

export function isFileSearch({ name, namespace }: ToolName): boolean {
  return name === 'file_search' && namespace === undefined
}

export function searchArguments(prompt: string): string {
  return JSON.stringify({ queries: [prompt.slice(0, queryCharsMax)] })
}

/** An answer with the first passage of a result and its mark; null where there is none in it. */
export function quotePassage(result: string): string | null {
  const [, best] = result.split(/\n\n(?=【\d+】 )/)
  if (best === undefined) return null
  const [head = '', ...lines] = best.split('\n')
  const [mark, ...origin] = head.split(' ')
  const words = lines.join(' ').match(/\S+/g) ?? []
  const quoted = words.slice(0, quotedWordsMax).join(' ')
  const more = words.length > quotedWordsMax ? ' …' : ''
  return `It says in ${origin.join(' ')}: "${quoted}${more}" ${mark}\n\nI am a demo model and run without a network.`
}
