// Prints the names that each entry exports.
const entries = require('./entries.json')

const names = {}
for (const entry of entries) {
  names[entry] = Object.keys(require(entry)).sort()
}
console.log(JSON.stringify(names))
