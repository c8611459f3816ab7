import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { may } from '../../session/session.ts'
import { text } from '../../texts/texts.ts'
import { Empty, Fault } from '../../ui/notice.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { useQuery } from '../../ui/query.ts'
import { Segments } from '../../ui/tabs.tsx'
import { loadConfiguration } from '../settings/config.ts'
import { Entries } from './entries.tsx'
import { entriesOf, nearShare, type Scope, scopes } from './limit-entries.ts'
import { UseTable } from './use-bars.tsx'

const refreshEveryMs = 5_000
const usesMax = 200
/** Without anybody near a limit, the fullest are shown. */
const fullestShown = 5

export function LimitsPage() {
  return (
    <Page
      title={text('limits.title')}
      about={text(may('can_edit_config') ? 'limits.about' : 'limits.about_me')}
    >
      {may('can_edit_config') ? <EveryLimit /> : <OwnLimits />}
    </Page>
  )
}

function useUses() {
  return useQuery(
    async (signal) => (await call('GET /v1/limits', { query: { limit: usesMax }, signal })).data,
    'limits',
    { everyMs: refreshEveryMs },
  )
}

/** What somebody without rights sees: their own. */
function OwnLimits() {
  const uses = useUses()
  return (
    <Card title={text('limits.yours')} flush>
      <UseTable
        label={text('limits.yours')}
        query={uses}
        rows={uses.data}
        isOwn
        empty={
          <Empty icon="limits" title={text('limits.none_yours')}>
            {text('limits.none_yours_hint')}
          </Empty>
        }
      />
    </Card>
  )
}

function EveryLimit() {
  const uses = useUses()
  const config = useQuery(loadConfiguration, 'config')
  const [scope, setScope] = useState<Scope>('default')
  const near = uses.data?.filter(({ share }) => share >= nearShare)
  const isQuiet = near?.length === 0
  return (
    <>
      <Card title={text(isQuiet ? 'limits.fullest' : 'limits.near')} flush>
        <UseTable
          label={text('limits.near')}
          query={uses}
          rows={isQuiet ? uses.data?.slice(0, fullestShown) : near}
          empty={
            <Empty icon="limits" title={text('limits.none_used')}>
              {text('limits.none_used_hint')}
            </Empty>
          }
        />
      </Card>
      <section class="stack">
        <div>
          <Segments
            label={text('limits.of')}
            choices={scopes.map((name) => ({ name, label: text(`limits.scope.${name}`) }))}
            selected={scope}
            onSelect={setScope}
          />
        </div>
        {config.error !== undefined && <Fault error={config.error} onRetry={config.reload} />}
        {config.data === undefined ? (
          config.error === undefined && <div class="card skeleton" />
        ) : (
          <Entries
            key={scope}
            scope={scope}
            config={config.data}
            entries={entriesOf(config.data.values, scope)}
            uses={uses.data ?? []}
            onChange={() => {
              config.reload()
              uses.reload()
            }}
          />
        )}
      </section>
    </>
  )
}
