"""Worked examples: a world, a query, and all candidates there are.

Tests send every case down three roads: through the pure solver, through rows in a database,
and over HTTP. `worlds` explains the notation.

"""

from dataclasses import dataclass

from placement.microversion import Version
from placement.tests.unit.candidates import worlds


@dataclass(frozen=True)
class Case:
    """One example."""

    name: str
    world: worlds.World
    query: str
    answers: str
    version: Version = worlds.NEWEST
    # The providers that are summarised, where it matters.
    summaries: str | None = None


_CASES: list[Case] = []


def _example(name: str, drawing: str, *rows: tuple[str, ...]) -> None:
    """Add the rows of one world: (query, answers[, version[, summaries]])."""
    world = worlds.World.of(drawing)
    for number, (query, answers, *more) in enumerate(rows, 1):
        version = Version(1, int(more[0])) if more and more[0] else worlds.NEWEST
        summaries = more[1] if len(more) > 1 else None
        _CASES.append(Case(f'{name}.{number}', world, query, answers, version, summaries))


_example(
    'amounts of a flat provider',
    """
CN[V:8, M: total 1024 min_unit 64 step_size 64 max_unit 512, D: total 10 reserved 2 ratio 1.5]
""".replace('ratio', 'allocation_ratio'),
    ('resources=M:32', ''),
    ('resources=M:96', ''),
    ('resources=M:576', ''),
    ('resources=M:512', 'CN{M:512}'),
    ('resources=D:12', 'CN{D:12}'),
    ('resources=D:13', ''),
    ('resources=V:9,V:2', 'CN{V:2}'),
    ('resources=V:100000000000000000000000000', ''),
    ('resources=V:1_0', ''),
    ('resources=V: 8', 'CN{V:8}'),
)

_NESTED = """
CN[V:8, M:1024] {VMX}
  NUMA0[VF:4] {PHYS1}
  NUMA1[VF:4, V:4] {PHYS2}
"""
_example(
    'the group without suffix spans a tree',
    _NESTED,
    (
        'resources=V:2,VF:1',
        "CN{V:2} NUMA0{VF:1} (''=CN+NUMA0); CN{V:2} NUMA1{VF:1} (''=CN+NUMA1);"
        "NUMA0{VF:1} NUMA1{V:2} (''=NUMA0+NUMA1); NUMA1{V:2,VF:1} (''=NUMA1)",
        '',
        'CN NUMA0 NUMA1',
    ),
    ('resources=V:2,VF:1', 'NUMA1{V:2,VF:1}', '28', 'NUMA1'),
    ('resources=VF:1', 'NUMA0{VF:1}; NUMA1{VF:1}', '28', 'NUMA0 NUMA1'),
    ('resources=VF:1', 'NUMA0{VF:1}; NUMA1{VF:1}', '10', 'NUMA0 NUMA1'),
)
_example(
    'traits of the group without suffix',
    _NESTED,
    ('resources=V:2,VF:1&required=VMX,PHYS1', 'CN{V:2} NUMA0{VF:1}'),
    ('resources=V:2,VF:1&required=VMX,!PHYS1', 'CN{V:2} NUMA1{VF:1}'),
    ('resources=V:2,VF:1&required=VMX,!!!PHYS1', 'CN{V:2} NUMA1{VF:1}'),
    ('resources=VF:1&required=VMX', ''),
    ('resources=VF:1&required=!VMX', 'NUMA0{VF:1}; NUMA1{VF:1}'),
    (
        'resources=V:1,VF:1&required=in:PHYS1,PHYS2&required=VMX',
        'CN{V:1} NUMA0{VF:1}; CN{V:1} NUMA1{VF:1}',
    ),
    # Before it could be repeated, only the last was looked at.
    ('resources=VF:1&required=VMX&required=PHYS1', 'NUMA0{VF:1}', '38'),
)
_example(
    'a group with suffix is one provider',
    _NESTED,
    ('resources1=V:1,VF:1', 'NUMA1{V:1,VF:1} (1=NUMA1)'),
    (
        'resources=V:1&resources1=VF:1&required1=PHYS2',
        "CN{V:1} NUMA1{VF:1} (''=CN 1=NUMA1); NUMA1{V:1,VF:1} (''=NUMA1 1=NUMA1)",
    ),
)

_example(
    'one trait of many',
    """
CN[V:8] {AVX}
  G0[VGPU:1] {T1}
  G1[VGPU:1] {T2}
  G2[VGPU:1] {T1 T2}
""",
    ('resources=VGPU:1&required=in:T1,T2', 'G0{VGPU:1}; G1{VGPU:1}; G2{VGPU:1}'),
    ('resources=VGPU:1&required=T1,T2', 'G2{VGPU:1}'),
    ('resources1=VGPU:1&required1=in:T1,T2&required1=!T2', 'G0{VGPU:1} (1=G0)'),
    (
        'resources=V:1,VGPU:1&required=in:AVX,T1&required=T2',
        'CN{V:1} G1{VGPU:1}; CN{V:1} G2{VGPU:1}',
    ),
    ('resources=VGPU:1&required=in:AVX,T1', 'G0{VGPU:1}; G2{VGPU:1}'),
    ('resources=VGPU:2', ''),
)

_SHARED = """
CN1[V:8] @S,A
CN2[V:8] @S
CN3[V:8, D:100] @S,A
SS[D:100] {SHARE} @S
"""
_FOUR = 'CN1{V:1} SS{D:10}; CN2{V:1} SS{D:10}; CN3{V:1,D:10}; CN3{V:1} SS{D:10}'
_example(
    'a sharing provider',
    _SHARED,
    ('resources=V:1,D:10', _FOUR),
    ('resources=V:1,D:10', _FOUR, '10'),
    ('resources=D:10', 'CN3{D:10}; SS{D:10}'),
    (
        'resources=V:1&resources1=D:10',
        "CN1{V:1} SS{D:10} (''=CN1 1=SS); CN2{V:1} SS{D:10} (''=CN2 1=SS);"
        "CN3{V:1,D:10} (''=CN3 1=CN3); CN3{V:1} SS{D:10} (''=CN3 1=SS)",
    ),
    (
        'resources=V:1,D:10&required=SHARE',
        'CN1{V:1} SS{D:10}; CN2{V:1} SS{D:10}; CN3{V:1} SS{D:10}',
    ),
    ('resources=V:1,D:10&required=!SHARE', 'CN3{V:1,D:10}'),
    ('resources=V:1,D:10&in_tree=CN1', ''),
    ('resources=V:1,D:10&in_tree=CN3', 'CN3{V:1,D:10}'),
    ('resources=V:1,D:10&in_tree=NOBODY', ''),
    ('resources=D:10&in_tree=SS', 'SS{D:10}'),
    (
        'resources=V:1&resources1=D:10&in_tree1=SS',
        'CN1{V:1} SS{D:10}; CN2{V:1} SS{D:10}; CN3{V:1} SS{D:10}',
    ),
    (
        'resources1=D:10&in_tree1=SS&resources2=V:1&in_tree2=CN1&group_policy=isolate',
        'CN1{V:1} SS{D:10} (1=SS 2=CN1)',
    ),
    ('resources=D:10&in_tree=SS&resources1=V:1', ''),
)
_example(
    'member_of and sharing',
    _SHARED,
    ('resources=V:1,D:10&member_of=A', 'CN3{V:1,D:10}'),
    ('resources=V:1,D:10&member_of=S', _FOUR),
    ('resources=V:1,D:10&member_of=!A', 'CN2{V:1} SS{D:10}'),
    ('resources=V:1,D:10&member_of=!S', ''),
)
_example(
    'member_of and sharing, once the sharing provider is a member',
    _SHARED.replace('{SHARE} @S', '{SHARE} @S,A'),
    (
        'resources=V:1,D:10&member_of=A',
        'CN1{V:1} SS{D:10}; CN3{V:1,D:10}; CN3{V:1} SS{D:10}',
    ),
    ('resources=V:1,D:10&member_of=!A', ''),
    (
        'resources=V:1&resources1=D:10&member_of1=A',
        'CN1{V:1} SS{D:10}; CN2{V:1} SS{D:10}; CN3{V:1,D:10}; CN3{V:1} SS{D:10}',
    ),
)

_example(
    'member_of in trees',
    """
R1[V:8] @A
  C1[VF:4]
R2[V:8]
  C2[VF:4] @A
R3[V:8] @A,B
  C3[VF:4] @B
""",
    ('resources=VF:1&member_of=A', 'C1{VF:1}; C2{VF:1}; C3{VF:1}'),
    ('resources=V:1,VF:1&member_of=A', 'R1{V:1} C1{VF:1}; R3{V:1} C3{VF:1}'),
    ('resources1=VF:1&member_of1=A', 'C2{VF:1}'),
    ('resources1=VF:1&member_of1=!A', 'C1{VF:1}; C3{VF:1}'),
    ('resources=VF:1&member_of=A&member_of=B', 'C3{VF:1}'),
    ('resources=VF:1&member_of=in:A,B', 'C1{VF:1}; C2{VF:1}; C3{VF:1}'),
    ('resources=VF:1&member_of=A&member_of=!B', 'C1{VF:1}; C2{VF:1}'),
    ('resources=VF:1&member_of=!A', ''),
    ('resources=VF:1&member_of=UNKNOWN', ''),
    ('resources=VF:1&member_of=!UNKNOWN', 'C1{VF:1}; C2{VF:1}; C3{VF:1}'),
    ('resources=V:1&resources1=VF:1&member_of=A', 'R1{V:1} C1{VF:1}; R3{V:1} C3{VF:1}'),
    ('resources=V:1&resources1=VF:1&member_of1=A', "R2{V:1} C2{VF:1} (''=R2 1=C2)"),
)

_example(
    'sharing through the aggregate of a child',
    """
CN[V:8]
  K[VGPU:8] @S
SS[D:100] {SHARE} @S
S2[D:100, IPV4_ADDRESS:10] {SHARE} @S
""",
    ('resources=V:1,D:1', 'CN{V:1} SS{D:1}; CN{V:1} S2{D:1}', '', 'CN K SS S2'),
    ('resources=V:1,D:1', 'CN{V:1} SS{D:1}; CN{V:1} S2{D:1}', '28', 'CN SS S2'),
    (
        'resources=D:1,IPV4_ADDRESS:1',
        'S2{D:1,IPV4_ADDRESS:1}; SS{D:1} S2{IPV4_ADDRESS:1}',
    ),
    ('resources1=D:1,IPV4_ADDRESS:1', 'S2{D:1,IPV4_ADDRESS:1} (1=S2)'),
    (
        'resources=VGPU:1&resources1=D:1&resources2=D:1&group_policy=isolate',
        "K{VGPU:1} SS{D:1} S2{D:1} (''=K 1=SS 2=S2); K{VGPU:1} SS{D:1} S2{D:1} (''=K 1=S2 2=SS)",
    ),
    (
        'resources=V:1&resources1=D:1&resources2=D:1&group_policy=none',
        "CN{V:1} SS{D:1} S2{D:1} (''=CN 1=SS 2=S2); CN{V:1} SS{D:1} S2{D:1} (''=CN 1=S2 2=SS);"
        "CN{V:1} SS{D:2} (''=CN 1=SS 2=SS); CN{V:1} S2{D:2} (''=CN 1=S2 2=S2)",
    ),
    ('resources1=VGPU:1&resources2=D:1&group_policy=none&same_subtree=1,2', ''),
)

_example(
    'what does not share',
    """
CN[V:8] @S
SS[D:100] {SHARE}
N[D:100] @S
""",
    ('resources=V:1,D:1', ''),
    ('resources=D:1', 'SS{D:1}; N{D:1}'),
)

_example(
    'root_required',
    """
CN1[V:8] {GOLD} @S
  K1[VGPU:2] {BLUE}
CN2[V:8] @S
  K2[VGPU:2] {GOLD}
SS[D:100] {SHARE BLUE} @S
""",
    ('resources=V:1,D:1&root_required=GOLD', 'CN1{V:1} SS{D:1}'),
    ('resources=V:1,D:1&root_required=!GOLD', 'CN2{V:1} SS{D:1}'),
    ('resources=VGPU:1&root_required=GOLD', 'K1{VGPU:1}'),
    ('resources=VGPU:1&root_required=!BLUE', 'K1{VGPU:1}; K2{VGPU:1}'),
    ('resources1=D:1&root_required=GOLD', 'SS{D:1}'),
    ('resources1=D:1&root_required=!GOLD,!BLUE', 'SS{D:1}'),
    ('resources=V:1&resources1=D:1&root_required=GOLD', 'CN1{V:1} SS{D:1}'),
    ('resources=D:1&in_tree=SS&root_required=GOLD', ''),
    ('resources1=D:1&in_tree1=SS&root_required=GOLD', 'SS{D:1}'),
)

_NUMA = """
CN[V:8] {HW}
  N0[M:100] {NUMA}
    G0[VGPU:2]
    F0[FPGA:1]
  N1[M:100] {NUMA FOO}
    G1[VGPU:2]
    F1[FPGA:1]
"""
_PAIRS = (
    'G0{VGPU:1} F0{FPGA:1}; G0{VGPU:1} F1{FPGA:1}; G1{VGPU:1} F0{FPGA:1}; G1{VGPU:1} F1{FPGA:1}'
)
_TWINS = 'G0{VGPU:1} F0{FPGA:1} (_G=G0 _F=F0 _N=N0); G1{VGPU:1} F1{FPGA:1} (_G=G1 _F=F1 _N=N1)'
_example(
    'same_subtree',
    _NUMA,
    (
        'resources_M=M:10&resources_G=VGPU:1&group_policy=none',
        'N0{M:10} G0{VGPU:1}; N0{M:10} G1{VGPU:1}; N1{M:10} G0{VGPU:1}; N1{M:10} G1{VGPU:1}',
    ),
    (
        'resources_M=M:10&resources_G=VGPU:1&group_policy=none&same_subtree=_M,_G',
        'N0{M:10} G0{VGPU:1}; N1{M:10} G1{VGPU:1}',
    ),
    ('resources_G=VGPU:1&resources_F=FPGA:1&group_policy=none&same_subtree=_F,_G', ''),
    (
        'resources_G=VGPU:1&resources_F=FPGA:1&required_N=NUMA&group_policy=none'
        '&same_subtree=_F,_G,_N',
        _TWINS,
    ),
    (
        'resources_G=VGPU:1&resources_F=FPGA:1&required_N=HW&group_policy=none'
        '&same_subtree=_F,_G,_N',
        _PAIRS,
    ),
    (
        'resources_G=VGPU:1&resources_F=FPGA:1&required_N=NUMA&group_policy=isolate'
        '&same_subtree=_F,_N&same_subtree=_G,_N',
        _TWINS,
    ),
    (
        'resources_G=VGPU:1&required_N=NUMA,!FOO&group_policy=isolate&same_subtree=_G,_N',
        'G0{VGPU:1} (_G=G0 _N=N0)',
    ),
)
_example(
    'groups without resources',
    _NUMA,
    (
        'resources=V:1&required_N=NUMA&same_subtree=_N',
        "CN{V:1} (''=CN _N=N0); CN{V:1} (''=CN _N=N1)",
    ),
    (
        'resources=V:1&required_N=NUMA&required_O=NUMA&same_subtree=_N,_O&group_policy=none',
        "CN{V:1} (''=CN _N=N0 _O=N0); CN{V:1} (''=CN _N=N1 _O=N1)",
    ),
    (
        'resources=V:1&required_N=NUMA&required_O=NUMA&same_subtree=_N,_O&group_policy=isolate',
        '',
    ),
    (
        'resources=V:1&required_N=NUMA&required_O=HW&same_subtree=_N,_O&group_policy=none',
        "CN{V:1} (''=CN _N=N0 _O=CN); CN{V:1} (''=CN _N=N1 _O=CN)",
    ),
    # Each kind of filter is a filter, alone too.
    (
        'resources=V:1&required_N=!FOO,!HW&same_subtree=_N&in_tree_N=CN',
        "CN{V:1} (''=CN _N=N0); CN{V:1} (''=CN _N=G0); CN{V:1} (''=CN _N=F0);"
        "CN{V:1} (''=CN _N=G1); CN{V:1} (''=CN _N=F1)",
    ),
    ('resources=V:1&required_N=NUMA&in_tree_N=NOBODY&same_subtree=_N', ''),
)

_DEVICES = """
CN[V:8]
  PF1[VF: total 4 max_unit 2] {A}
  PF2[VF: total 4 max_unit 4] {A B}
"""
_CROSSED = 'PF1{VF:1} PF2{VF:1} (1=PF1 2=PF2); PF1{VF:1} PF2{VF:1} (1=PF2 2=PF1)'
_DOUBLE = 'PF1{VF:2} (1=PF1 2=PF1); PF2{VF:2} (1=PF2 2=PF2)'
_example(
    'several groups of one class',
    _DEVICES,
    ('resources1=VF:1&resources2=VF:1&group_policy=none', f'{_CROSSED}; {_DOUBLE}'),
    ('resources1=VF:1&resources2=VF:1&group_policy=isolate', _CROSSED),
    (
        'resources1=VF:1&resources2=VF:2&group_policy=none',
        'PF1{VF:1} PF2{VF:2}; PF1{VF:2} PF2{VF:1}; PF2{VF:3}',
    ),
    (
        'resources1=VF:2&resources2=VF:2&group_policy=none',
        'PF1{VF:2} PF2{VF:2} (1=PF1 2=PF2); PF1{VF:2} PF2{VF:2} (1=PF2 2=PF1);'
        'PF2{VF:4} (1=PF2 2=PF2)',
    ),
    (
        'resources1=VF:1&required1=B&resources2=VF:1&group_policy=isolate',
        'PF1{VF:1} PF2{VF:1} (1=PF2 2=PF1)',
    ),
    ('resources1=VF:1,V:1', ''),
    ('resources=V:1&resources1=V:7', 'CN{V:8}'),
    ('resources=V:1&resources1=V:8', ''),
    (
        'resources1=VF:1&resources2=VF:1&group_policy=none',
        'PF1{VF:1} PF2{VF:1}; PF1{VF:1} PF2{VF:1}; PF1{VF:2}; PF2{VF:2}',
        '33',
    ),
    ('resources1=VF:1&resources2=VF:1&group_policy=none', 'PF1{VF:2}; PF2{VF:2}', '28'),
    ('resources1=V:1&resources2=VF:1&group_policy=none', '', '28'),
    # One class in the group without suffix and in another: each gets its own amount.
    (
        'resources=VF:1&resources2=VF:1',
        "PF1{VF:1} PF2{VF:1} (''=PF1 2=PF2); PF1{VF:1} PF2{VF:1} (''=PF2 2=PF1);"
        "PF1{VF:2} (''=PF1 2=PF1); PF2{VF:2} (''=PF2 2=PF2)",
    ),
    (
        'resources=VF:1&resources2=VF:1&group_policy=isolate',
        "PF1{VF:1} PF2{VF:1} (''=PF1 2=PF2); PF1{VF:1} PF2{VF:1} (''=PF2 2=PF1);"
        "PF1{VF:2} (''=PF1 2=PF1); PF2{VF:2} (''=PF2 2=PF2)",
    ),
)

_example(
    'usage counts against the sum of groups',
    'CN[V: total 8 used 4]',
    ('resources1=V:2&resources2=V:3&group_policy=none', ''),
    ('resources1=V:2&resources2=V:2&group_policy=none', 'CN{V:4}'),
)

_POOL = """
CN1[V:8] @S
CN2[V:8] @S
CN3[V:8]
SS[D:100] {SHARE} @S
"""
_example(
    'several groups on one sharing provider',
    _POOL,
    ('resources1=D:5&resources2=D:6&group_policy=none', 'SS{D:11} (1=SS 2=SS)'),
    ('resources1=D:5&resources2=D:6&group_policy=isolate', ''),
    (
        'resources=V:1&resources1=D:5&root_required=!SHARE',
        'CN1{V:1} SS{D:5}; CN2{V:1} SS{D:5}',
    ),
    ('resources1=V:1&in_tree1=CN1&resources2=D:5&group_policy=none', 'CN1{V:1} SS{D:5}'),
    # A group that sharing providers serve alone is served so around every anchor.
    (
        'resources=D:10&resources1=V:1',
        "CN1{V:1} SS{D:10} (''=SS 1=CN1); CN2{V:1} SS{D:10} (''=SS 1=CN2)",
    ),
)
_example(
    'a sharing provider below a root that lacks a class',
    """
CN[V:8] @S
R[M:8]
  SC[D:100] {SHARE} @S
""",
    ('resources=V:1,D:1', "CN{V:1} SC{D:1} (''=CN+SC)", '', 'CN R SC'),
    ('resources=V:1&resources1=D:1', "CN{V:1} SC{D:1} (''=CN 1=SC)"),
    ('resources=V:1,D:1', 'CN{V:1} SC{D:1}', '28', 'CN SC'),
)
_example(
    'sharing providers that meet only around some trees',
    """
CN1[V:8] @S
CN2[V:8] @S,P
S1[D:100] {SHARE} @S
S2[IPV4_ADDRESS:10] {SHARE} @P
""",
    ('resources=D:1,IPV4_ADDRESS:1', 'S1{D:1} S2{IPV4_ADDRESS:1}'),
    ('resources1=D:1&resources2=IPV4_ADDRESS:1&group_policy=isolate', 'S1{D:1} S2{IPV4_ADDRESS:1}'),
    ('resources=V:1,D:1,IPV4_ADDRESS:1', 'CN2{V:1} S1{D:1} S2{IPV4_ADDRESS:1}'),
)
_example(
    'ancestors among sharing providers',
    """
CN[V:8] @S
R[M:8] {SHARE} @S
  X
    Y[D:10] {SHARE} @S
""",
    (
        'resources=V:1&resources1=M:1&resources2=D:1&group_policy=none&same_subtree=1,2',
        "CN{V:1} R{M:1} Y{D:1} (''=CN 1=R 2=Y)",
    ),
)

_example(
    'two trees',
    """
CN1[V:8]
  N1[VGPU:1] {T1}
CN2[V:8]
  N2[VGPU:1] {T1}
""",
    ('resources=V:1&resources_B=VGPU:1&in_tree=CN1', 'CN1{V:1} N1{VGPU:1}'),
    ('resources=V:1&resources_B=VGPU:1&in_tree_B=CN2', 'CN2{V:1} N2{VGPU:1}'),
    ('resources=V:1&in_tree=N1', 'CN1{V:1}'),
    (
        'resources_A=V:1&resources_B=VGPU:1&group_policy=isolate&same_subtree=_A,_B',
        'CN1{V:1} N1{VGPU:1}; CN2{V:1} N2{VGPU:1}',
    ),
    ('resources=V:1&required_N=T1&in_tree_N=CN1&same_subtree=_N', "CN1{V:1} (''=CN1 _N=N1)"),
)

_example(
    'isolated groups that leave the first choice of one to another',
    """
R
  P1[VGPU:1] {A T1}
  P2[VGPU:1] {A B T1}
  P3[VGPU:1] {B}
""",
    (
        'resources1=VGPU:1&required1=A&resources2=VGPU:1&required2=B'
        '&resources3=VGPU:1&required3=T1&group_policy=isolate',
        'P1{VGPU:1} P2{VGPU:1} P3{VGPU:1} (1=P1 2=P3 3=P2); '
        'P1{VGPU:1} P2{VGPU:1} P3{VGPU:1} (1=P2 2=P3 3=P1)',
    ),
)

GENERATION = worlds.World.of(
    '\n'.join(line for root in 'ABC' for line in (root, *(f'  {root}{n}[VF:4]' for n in range(3))))
)

CASES: tuple[Case, ...] = tuple(_CASES)
