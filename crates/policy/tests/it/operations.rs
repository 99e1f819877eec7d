//! Each operation, also on arguments that do not fit.

use serde_json::json;

use crate::evaluate;

#[test]
fn comparisons_hold_for_values_of_one_type() {
    for (expression, expected) in [
        ("{$eq: [$request.n, 7.0]}", true),
        ("{$eq: [$request.n, '7']}", false),
        ("{$eq: [$request.missing, null]}", true),
        ("{$eq: [$request.sliceInfo, {sd: 00000a, sst: 1}]}", true),
        ("{$eq: [[1, [2]], [1, [2]]]}", true),
        ("{$ne: [[1, [2]], [1, [3]]]}", true),
        ("{$lt: [$request.n, 8]}", true),
        ("{$le: [a, b]}", true),
        ("{$gt: [$request.nothing, 1]}", false),
        ("{$ge: [$request.f, 2.5]}", true),
        ("{$lt: [1, b]}", false),
        ("{$all: [true, $request.yes]}", true),
        ("{$all: [true, $request.n]}", false),
        ("{$any: [false, $request.yes]}", true),
        ("{$not: $request.nothing}", true),
        ("{$exists: $request.nothing}", false),
        ("{$exists: '$request.list[3][0]'}", true),
        ("{$in: [b, $request.list]}", true),
        ("{$in: [[1], $request.list]}", true),
        ("{$in: [sst, $request.sliceInfo]}", true),
        ("{$contains: [$request.dnn, tern]}", true),
        ("{$contains: [$request.list, x]}", false),
        ("{$startsWith: [$request.dnn, inter]}", true),
        ("{$endsWith: [$request.n, inter]}", false),
        ("{$wildcard: [$request.dnn, 'in*n?t']}", true),
        ("{$eq: [$event, create]}", true),
    ] {
        assert_eq!(evaluate(expression), expected, "{expression}");
    }
}

#[test]
fn values_are_computed() {
    for (expression, expected) in [
        ("$$request", json!("$request")),
        ("{$literal: {$x: $y}}", json!({"$x": "$y"})),
        ("'$request.list[2].c.d'", json!(null)),
        ("'$counters[$request.list[1]].x'", json!(null)),
        ("'$counters[\"daily\"].currentStatus'", json!("low")),
        ("'$subscriber[\"a/b\"].~'", json!(1)),
        ("{$if: [$request.yes, a, b]}", json!("a")),
        ("{$first: [$request.nothing, $request.n]}", json!(7)),
        ("{$add: [1, 2, $request.f]}", json!(5.5)),
        ("{$add: $request.list}", json!(null)),
        (
            "{$add: [9223372036854775807, 1]}",
            json!(9.223_372_036_854_776e18),
        ),
        ("{$sub: [$request.n, 10]}", json!(-3)),
        ("{$mul: [3, 4]}", json!(12)),
        ("{$div: [7, 2]}", json!(3.5)),
        ("{$div: [7, 0]}", json!(null)),
        ("{$mod: [7, 0]}", json!(null)),
        ("{$mod: [7, 4]}", json!(3)),
        ("{$min: [3, $request.f, x]}", json!(2.5)),
        ("{$max: [$request.nothing, 1, 2]}", json!(2)),
        ("{$round: 2.5}", json!(3)),
        ("{$number: ' 12.0 '}", json!(12)),
        ("{$number: x}", json!(null)),
        ("{$text: 1.5}", json!("1.5")),
        ("{$concat: [a, 1, true, null, [2]]}", json!("a1true[2]")),
        ("{$lower: ABC}", json!("abc")),
        ("{$upper: $request.dnn}", json!("INTERNET")),
        ("{$slice: [$request.dnn, 0, 5]}", json!("inter")),
        ("{$slice: [$request.dnn, -3]}", json!("net")),
        ("{$slice: [$request.list, 1, 2]}", json!(["b"])),
        ("{$slice: [ééé, 1, 99]}", json!("éé")),
        ("{$split: ['a,b', ',']}", json!(["a", "b"])),
        ("{$join: [$subscriber.subscCats, '+']}", json!("gold+staff")),
        ("{$length: $request.list}", json!(4)),
        ("{$length: é}", json!(1)),
        ("{$length: $request.n}", json!(null)),
        ("{$bps: 1.5 Kbps}", json!(1500)),
        ("{$bps: fast}", json!(null)),
        ("{$bitRate: {$mul: [0.8, {$bps: 1 Gbps}]}}", json!("800 Mbps")),
        ("{$timeAfter: 90}", json!("2026-01-05T12:01:30Z")),
        ("{$timeAfter: 1e300}", json!(null)),
        ("{$keys: $request.sliceInfo}", json!(["sst", "sd"])),
        ("{$values: $request.sliceInfo}", json!([1, "00000a"])),
        ("{$keys: $request.n}", json!(null)),
        (
            "{$merge: [$request.sliceInfo, {sd: null, a: {b: 1, c: null}}]}",
            json!({"sst": 1, "a": {"b": 1}}),
        ),
        ("{$merge: [$request.n, {a: 1}]}", json!({"a": 1})),
        ("{$pick: [$request.sliceInfo, [sst, x]]}", json!({"sst": 1})),
        ("{$omit: [$request.sliceInfo, [sst]]}", json!({"sd": "00000a"})),
        ("{$pointer: [$subscriber, /a~1b/~0]}", json!(1)),
        ("{$pointer: [$request, /list/3/0]}", json!(1)),
        ("{$pointer: [$request, list]}", json!(null)),
        (
            "{$put: [$request.sliceInfo, /sd, x]}",
            json!({"sst": 1, "sd": "x"}),
        ),
        ("{$put: [$request.sliceInfo, /sd, null]}", json!({"sst": 1})),
        ("{$put: [$request.list, /1, null]}", json!([3, {"c": null}, [1]])),
        (
            "{$put: [$request.list, /9, 1]}",
            json!([3, "b", {"c": null}, [1]]),
        ),
        ("{$put: [$request.nothing, /a/b, 1]}", json!({"a": {"b": 1}})),
        ("{$append: [$request.nothing, 1]}", json!([1])),
        ("{$append: [$request.n, 1]}", json!(null)),
        ("{$parse: '{\"a\":[1,{}]}'}", json!({"a": [1, {}]})),
        ("{$parse: '{'}", json!(null)),
        ("{$stringify: {a: [$request.n]}}", json!("{\"a\":[7]}")),
    ] {
        assert_eq!(evaluate(expression), expected, "{expression}");
    }
}
