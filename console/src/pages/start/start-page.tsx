import { useState } from 'preact/hooks'
import { call } from '../../api/call.ts'
import { me } from '../../session/session.ts'
import { href } from '../../shell/router.ts'
import { text } from '../../texts/texts.ts'
import { Button } from '../../ui/button.tsx'
import { CodeBlock } from '../../ui/code.tsx'
import { SelectField } from '../../ui/field.tsx'
import { Fault, Notice } from '../../ui/notice.tsx'
import { Card, Page } from '../../ui/page.tsx'
import { useAction, useQuery } from '../../ui/query.ts'
import { Tabs } from '../../ui/tabs.tsx'
import { Health } from './health.tsx'
import { snippets } from './snippets.ts'

const placeholderKey = 'YOUR_API_KEY'

export function StartPage() {
  const name = me.value?.name ?? me.value?.subject ?? ''
  const models = useQuery((signal) => call('GET /v1/models', { signal }), 'models')
  return (
    <Page
      title={text('start.greeting', { name })}
      about={text('start.about')}
      actions={
        <a class="button primary" href={href('/playground')}>
          {text('start.chat')}
        </a>
      }
    >
      <Health models={models} />
      <Clients
        models={(models.data?.data ?? [])
          .filter(({ mode }) => mode === 'generate')
          .map(({ id }) => id)}
      />
    </Page>
  )
}

function Clients({ models }: { models: readonly string[] }) {
  const [chosen, setChosen] = useState<string>('python')
  const [model, setModel] = useState<string | null>(null)
  const [created, setCreated] = useState<{ name: string; key: string } | null>(null)
  const [fault, setFault] = useState<unknown>()
  const [isBusy, run] = useAction()
  const snippet = snippets.find(({ name }) => name === chosen) ?? snippets[0]
  const create = () =>
    run(async () => {
      try {
        setCreated(await call('POST /v1/api-keys', { body: { name: text('start.key_name') } }))
        setFault(undefined)
      } catch (error) {
        setFault(error)
      }
    })
  const code = snippet?.code({
    origin: location.origin,
    key: created?.key ?? placeholderKey,
    model: model ?? models[0] ?? 'demo',
  })
  return (
    <Card
      title={text('start.clients')}
      actions={
        <a class="button small" href={href('/keys')}>
          {text('start.keys')}
        </a>
      }
    >
      <div class="stack">
        <p class="muted">{text('start.clients_hint')}</p>
        <div class="row">
          <Button
            kind="primary"
            icon="keys"
            disabled={isBusy || created !== null}
            onClick={() => void create()}
          >
            {text('start.key_create')}
          </Button>
        </div>
        {fault !== undefined && <Fault error={fault} />}
        {created !== null && <Notice>{text('start.key_made', { name: created.name })}</Notice>}
        {models.length > 1 && (
          <div class="narrow">
            <SelectField
              label={text('start.model')}
              value={model ?? models[0] ?? ''}
              onValue={setModel}
              options={models.map((value) => ({ value, label: value }))}
            />
          </div>
        )}
        <Tabs label={text('start.client')} tabs={snippets} selected={chosen} onSelect={setChosen}>
          {code !== undefined && <CodeBlock code={code} label={snippet?.label ?? ''} />}
        </Tabs>
      </div>
    </Card>
  )
}
