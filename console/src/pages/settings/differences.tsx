import { text } from '../../texts/texts.ts'
import { Differences } from '../../ui/differences.tsx'
import { differencesOf, showValue } from '../../ui/schema/schema.ts'

/** The last word of a name is its unit. */
function shown(value: unknown, path: string): string {
  const unit = /(bytes|seconds)$/.exec(path)?.[0]
  return showValue(value, unit === undefined ? {} : { 'x-unit': unit })
}

/** What changes in the settings. */
export function SettingDifferences({ before, after }: { before: unknown; after: unknown }) {
  const differences = differencesOf(before, after).map(({ path, before, after }) => ({
    name: path,
    before: shown(before, path),
    after: shown(after, path),
  }))
  return (
    <Differences
      label={text('settings.differences')}
      none={text('settings.no_difference')}
      differences={differences}
    />
  )
}
