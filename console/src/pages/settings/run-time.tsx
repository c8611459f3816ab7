import { useEffect, useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { href } from '../../shell/router.ts'
import { language, text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { Fault } from '../../ui/notice.tsx'
import { Card } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { faultsOf, humanize, patchBetween, type SchemaFault } from '../../ui/schema/schema.ts'
import { loadConfiguration, type Setting } from './config.ts'
import { ReviewDialog } from './review-dialog.tsx'
import { SettingRow } from './setting-row.tsx'

/** New values by key; null resets one. */
export type Draft = Readonly<Record<string, unknown>>
type Names = Readonly<Record<string, readonly [title: string, description: string]>>

const noNames: Names = {}
const modes = {
  generate: 'generation model',
  embed: 'embedding model',
  rerank: 'rerank model',
} as const

/** Forms for every setting that can be changed while the gateway runs. */
export function RunTime({ draft, onDraft }: { draft: Draft; onDraft: (draft: Draft) => void }) {
  const query = useQuery(loadConfiguration, 'config')
  const suggestions = useSuggestions()
  const names = useNames()
  const [isReviewing, setReviewing] = useState(false)
  useEffect(() => {
    if (Object.keys(draft).length === 0) return
    const warn = (event: BeforeUnloadEvent) => event.preventDefault()
    addEventListener('beforeunload', warn)
    return () => removeEventListener('beforeunload', warn)
  }, [draft])
  if (query.data === undefined) {
    return query.error === undefined ? (
      <div class="card skeleton chart" />
    ) : (
      <Fault error={query.error} onRetry={query.reload} />
    )
  }
  const { settings, tag } = query.data
  const changes = changesOf(settings, draft)
  const faults = settings.flatMap((setting) => faultsIn(setting, draft))
  const count = Object.keys(changes).length
  const change = (setting: Setting, value: unknown) => {
    const { [setting.key]: _, ...others } = draft
    const isSame = value !== null && patchBetween(setting.value, value) === undefined
    onDraft(isSame ? others : { ...others, [setting.key]: value })
  }
  return (
    <div class="stack settings">
      {sectionsOf(settings).map(([section, members]) => (
        <Card
          key={section}
          title={sectionTitle(section)}
          flush
          actions={
            (section === 'limits' || section === 'budgets') && (
              <a class="button small" href={href('/limits')}>
                {text('settings.to_limits')}
              </a>
            )
          }
        >
          {members.map((setting) => (
            <SettingRow
              key={setting.key}
              setting={setting}
              names={names[setting.key]}
              draft={draft[setting.key]}
              isChanged={Object.hasOwn(draft, setting.key)}
              faults={faultsIn(setting, draft)}
              suggestions={suggestions}
              onChange={(value) => change(setting, value)}
              onUndo={() => change(setting, setting.value)}
            />
          ))}
        </Card>
      ))}
      {count > 0 && (
        <section class="save-bar" aria-label={text('settings.unsaved')}>
          <span class="grow" role="status">
            {faults.length > 0
              ? text('settings.faults', { count: faults.length })
              : text('settings.changes', { count })}
          </span>
          <Button onClick={() => onDraft({})}>{text('settings.discard')}</Button>
          <Button kind="primary" disabled={faults.length > 0} onClick={() => setReviewing(true)}>
            {text('settings.review')}
          </Button>
        </section>
      )}
      {isReviewing && (
        <ReviewDialog
          changes={changes}
          settings={settings}
          tag={tag}
          onClose={() => setReviewing(false)}
          onStale={query.reload}
          onSaved={() => {
            setReviewing(false)
            onDraft({})
            query.reload()
          }}
        />
      )}
    </div>
  )
}

/** What a draft changes: values, or merge patches of objects. */
function changesOf(settings: readonly Setting[], draft: Draft): Record<string, unknown> {
  return Object.fromEntries(
    settings.flatMap(({ key, value }) => {
      if (!Object.hasOwn(draft, key)) return []
      const next = draft[key]
      return [[key, next === null ? null : (patchBetween(value, next) ?? next)]]
    }),
  )
}

function faultsIn({ key, schema }: Setting, draft: Draft): SchemaFault[] {
  return Object.hasOwn(draft, key) && draft[key] !== null ? faultsOf(schema, draft[key]) : []
}

/** By the first part of their keys; those without one come first. */
function sectionsOf(settings: readonly Setting[]): [string, Setting[]][] {
  const sections = new Map<string, Setting[]>()
  for (const setting of settings) {
    const [first = ''] = setting.key.includes('.') ? setting.key.split('.') : ['']
    sections.set(first, [...(sections.get(first) ?? []), setting])
  }
  return [...sections]
}

function sectionTitle(section: string): string {
  switch (section) {
    case '':
      return text('settings.section.retrieval')
    case 'service_desk':
    case 'files':
    case 'models':
    case 'responses':
    case 'limits':
    case 'budgets':
      return text(`settings.section.${section}`)
    default:
      return humanize(section)
  }
}

/** Names of models by their mode, for settings that refer to one. */
function useSuggestions(): Readonly<Record<string, readonly string[]>> {
  const { data } = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  const models = data?.data ?? []
  return Object.fromEntries(
    Object.entries(modes).map(([mode, reference]) => [
      reference,
      models.filter((model) => model.mode === mode).map(({ id }) => id),
    ]),
  )
}

/** The schema is in English; other languages have names of their own. */
function useNames(): Names {
  const [names, setNames] = useState(noNames)
  const { value } = language
  useEffect(() => {
    if (value !== 'de') setNames(noNames)
    else void import('./names-de.ts').then(({ namesDe }) => setNames(namesDe))
  }, [value])
  return names
}
