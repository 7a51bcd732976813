/**
 * Takes one server out of everything that a Citrix ADC balances over it: a service group member and a
 * service. One request is in flight on each, the appliance keeps idle connections for reuse, and the
 * drain ends when the appliance itself says that nothing is left.
 *
 * The appliance is the stand-in of `drainable/testing/citrix-adc`; give ADC_URL, ADC_USER and
 * ADC_PASSWORD, and ADC_ADDRESS of a server, to drain it on a real one.
 */
import { ready, select, startDrain } from 'drainable'
import { citrixAdc } from 'drainable/citrix-adc'
import { startFake } from 'drainable/testing/citrix-adc'

const { ADC_URL, ADC_USER = 'nsroot', ADC_PASSWORD = '', ADC_ADDRESS = '10.0.0.1' } = process.env

const fake =
  ADC_URL === undefined
    ? await startFake({
        pools: { 'sg web': ['10.0.0.1:80', '10.0.0.2:80'] },
        vservers: { 'vs api': [{ name: 'api-1', address: '10.0.0.1', port: 8080 }, 'api-2'] },
      })
    : undefined

await using adc = citrixAdc(
  fake === undefined
    ? { url: ADC_URL ?? '', username: ADC_USER, password: () => ADC_PASSWORD }
    : {
        url: fake.url,
        username: fake.username,
        password: fake.password,
        tls: { ca: fake.ca },
        freshness: '1s', // the stand-in counts at once; an appliance needs the default of 8 s
      },
)

try {
  const target = { address: ADC_ADDRESS }
  const members = (await select(adc, target)).map(({ ref }) => ref)
  console.log(`${ADC_ADDRESS} carries ${members.map((m) => `${m.pool}/${m.member}`).join(', ')}`)

  for (const ref of members) {
    const end = await fake?.occupy(ref)
    await fake?.occupy(ref, { pooled: 2 })
    setTimeout(() => void end?.(), 1_500)
  }

  await using run = startDrain(adc, target, { timeout: '2m' })
  run.on('load', ({ ref, active, queued }) => {
    console.log(`${ref.member}: ${active} in flight, ${queued} queued`)
  })
  run.on('fault', ({ error }) => console.log(error.message))
  const report = await run.done
  for (const { ref, outcome, sealed, proof, why } of report.members) {
    console.log(
      `${ref.member}: ${outcome}, ${sealed ? 'closed to all clients' : 'open to persistent clients'}`,
    )
    for (const line of proof === undefined ? why.map(({ text }) => text) : [proof.text]) {
      console.log(`  ${line}`)
    }
  }
  if (report.outcome !== 'idle') process.exitCode = 1

  for (const { ref, health } of (await ready(adc, target, { waitHealthy: true })).members) {
    console.log(`${ref.member}: back in service, ${health}`)
  }
} finally {
  await adc.close()
  await fake?.close()
}
